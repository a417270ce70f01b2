"""Policies: YAML files under ``policies/`` → one typed, checked, sealed set of tables and decisions.

model (what a policy is) · load (YAML → model) · check (types, cycles, unreachable rules) · seal (digest, cache).
"""
