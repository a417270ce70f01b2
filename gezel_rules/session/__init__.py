"""What one user can ask for, with plain arguments: plan, pull, launch, serve. Commands parse, call this, and print."""

from gezel_rules.session.session import HERE, Conditions, Prepared, Session, session_for, to_stderr

__all__ = ["HERE", "Conditions", "Prepared", "Session", "session_for", "to_stderr"]
