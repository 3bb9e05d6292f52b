"""The app's pages, one file each; what they show is made by plain functions beside them."""
