"""Two runs or two turns side by side; many against one."""
