"""The IR read, made and changed without the checks that xDSL runs at each access: for what a compile does by the
thousand."""
