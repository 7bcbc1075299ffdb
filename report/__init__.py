"""Accuracy report, figures and timelines."""
