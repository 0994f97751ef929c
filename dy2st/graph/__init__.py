"""Staging: regions of code become subgraphs, and subgraphs become higher-order operators."""
