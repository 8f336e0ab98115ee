"""What runs beside the requests of an API process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from api.kernel.state import Kernel
from runtime.worker_notifier import OutboxNotifier


@asynccontextmanager
async def outbox_notifications(kernel: Kernel) -> AsyncIterator[None]:
    """Wake the relay after each commit that wrote to the outbox."""
    notifier = OutboxNotifier(kernel.settings.database_url.get_secret_value())
    kernel.database.on_outbox = notifier.notify
    task = asyncio.create_task(notifier.run(), name="outbox-notifier")
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
