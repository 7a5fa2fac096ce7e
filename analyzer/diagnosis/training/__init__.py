"""Teaches a language model the second stage: pairs of a dossier and its checked answer become a LoRA adapter."""
