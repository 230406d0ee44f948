"""Real failures and real successes, replayed: does wheelscope say beforehand what happened?"""
