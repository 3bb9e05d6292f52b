"""Record: what an agent loop does becomes tape records, journals and rows; knows nothing of replay or the screen."""
