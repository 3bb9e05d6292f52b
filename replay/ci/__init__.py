"""What a CI wants of a replay: exit codes, JUnit, annotations, a summary, budgets."""
