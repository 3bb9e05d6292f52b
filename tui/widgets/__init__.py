"""The parts that screens are made of; each draws safe text only."""
