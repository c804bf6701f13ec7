"""The Phoenix server: its HTTP API, running one locally, checking and cleaning one."""
