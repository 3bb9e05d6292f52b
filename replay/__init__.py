"""Think: reads recordings and says what happened in them; never draws."""
