"""Shows that an implementation of SDS keeps the rules, be it this one or another one."""
