"""The parts that act by themselves: automations, runs, triggers, waits, webhooks, actions, secrets.

Commands accept a run in one transaction with the intent to start it. Everything that happens later
is called by activities, transaction by transaction; nothing here waits.
"""
