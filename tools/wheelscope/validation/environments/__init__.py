"""Real environments, healthy and broken: does `wheelscope env` say of each package what `import` says?"""
