"""What went over the wire: message lists, request and response pairs, cassettes."""
