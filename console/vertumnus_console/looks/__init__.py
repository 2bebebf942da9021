"""What a screen shows beyond the view of the pool; made only while that screen is looked at."""
