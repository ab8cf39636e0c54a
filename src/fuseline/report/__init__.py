"""What a compile left behind, shown: every module here reads `records` and nothing else of fuseline."""
