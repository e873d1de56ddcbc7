"""Long runs that measure what is promised of declip in bad times."""
