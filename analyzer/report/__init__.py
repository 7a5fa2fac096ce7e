"""Findings as text, JSON and SARIF. Everything here returns a value; nothing prints or writes."""
