"""What several faults share; no fault is here."""
