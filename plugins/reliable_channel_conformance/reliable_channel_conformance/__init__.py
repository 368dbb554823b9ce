"""Show that an implementation of SDS keeps the rules, ours or another one."""
