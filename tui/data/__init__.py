"""Where the app has its data from: short readings of the store, each given back as a frozen snapshot."""
