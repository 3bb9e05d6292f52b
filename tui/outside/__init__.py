"""What leaves the program: files, the clipboard, other programs, pictures."""
