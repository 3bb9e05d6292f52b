"""What one can do on any screen: copy, open, export, resume, commands typed or chosen."""
