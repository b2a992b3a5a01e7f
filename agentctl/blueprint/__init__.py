"""Blueprints: schema, load with positions, check, catalogue."""
