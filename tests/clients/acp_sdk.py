"""An editor in a few lines: it starts `dwell acp` (its path is the argument) and drives a session with the Agent Client
Protocol's own library. `pip install agent-client-protocol`."""

import asyncio
import os
import sys

import acp
from acp.schema import AllowedOutcome, RequestPermissionResponse


class Editor(acp.Client):
    def __init__(self):
        self.updates = []
        self.asked = []

    async def session_update(self, session_id, update, **_):
        self.updates.append(update)

    async def request_permission(self, session_id, tool_call, options, **_):
        self.asked.append(tool_call.raw_input)
        yes = next(option for option in options if option.kind == "allow_once")
        outcome = AllowedOutcome(outcome="selected", option_id=yes.option_id)
        return RequestPermissionResponse(outcome=outcome)

    def words(self):
        chunks = [one for one in self.updates if one.session_update == "agent_message_chunk"]
        return "".join(chunk.content.text for chunk in chunks)


async def main():
    editor = Editor()
    cwd = os.getcwd()
    async with acp.spawn_agent_process(editor, sys.argv[1], "acp", "-p", "script", env=os.environ) as (agent, _):
        hello = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        assert hello.protocol_version == 1
        session = (await agent.new_session(cwd=cwd, mcp_servers=[])).session_id

        # A turn with a call that has to be allowed.
        script = 'say grün 😀\ndo execute {"command": "echo ran"}\nsay , done'
        turn = await agent.prompt(session_id=session, prompt=[acp.text_block(script)])
        assert turn.stop_reason == "end_turn", turn
        assert editor.words() == "grün 😀, done", editor.words()
        assert editor.asked == [{"command": "echo ran"}], editor.asked

        # One that is stopped.
        long = asyncio.create_task(
            agent.prompt(session_id=session, prompt=[acp.text_block("wait 60000")])
        )
        await asyncio.sleep(0)
        await agent.cancel(session_id=session)
        assert (await long).stop_reason == "cancelled"

        # All of it again, as after a restart of the editor.
        editor.updates.clear()
        await agent.load_session(session_id=session, cwd=cwd, mcp_servers=[])
        assert editor.words() == "grün 😀, done", editor.words()
    print("scenario passed")


asyncio.run(main())
