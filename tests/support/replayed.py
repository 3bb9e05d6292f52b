"""Programs under `looptape replay -- COMMAND`: the agent that they are, recorded first, and what is left of their tools."""

import sys

from fakellm import Call, Step
from launched import CLI, INSIDE
from looptape.tracer.store import Filter, open_store

PYTHON = sys.executable
REPLAY = [sys.executable, "-P", "-m", "looptape.tui.cli", "replay"]
AGENT = INSIDE + (
    "import looptape, pathlib\n"
    "def ran(name): pathlib.Path('ran').open('a').write(name + '\\n')\n"
    "@looptape.tool\n"
    "def search(q): ran('search'); return f'found {q}'\n"
    "@looptape.tool(side_effect='mutate')\n"
    "def send(to): ran('send'); return f'sent to {to}'\n"
    "TOOLS = {'search': search, 'send': send}\n"
    "def model(messages):\n"
    "    body = {'model': 'm-1', 'max_tokens': 9, 'messages': messages}\n"
    "    library = importlib.import_module('httpx2' if importlib.util.find_spec('httpx2') else 'httpx')\n"
    "    reply = library.post(os.environ['ANTHROPIC_BASE_URL'] + '/v1/messages', json=body, timeout=60)\n"
    "    reply.raise_for_status()\n"
    "    return reply.json()\n"
    "def loop(prompt, turns=99, on_turn=lambda n: None):\n"
    "    messages = [{'role': 'user', 'content': prompt}]\n"
    "    for n in range(1, turns + 1):\n"
    "        said = model(messages)['content']\n"
    "        messages.append({'role': 'assistant', 'content': said})\n"
    "        on_turn(n)\n"
    "        calls = [b for b in said if b['type'] == 'tool_use']\n"
    "        if not calls: break\n"
    "        messages.append({'role': 'user', 'content': [\n"
    "            {'type': 'tool_result', 'tool_use_id': c['id'], 'content': TOOLS[c['name']](**c['input'])} for c in calls]})\n"
    "    return messages\n"
)
MAIN = AGENT + "print(json.dumps(loop(os.environ.get('PROMPT', 'What is the revenue?')))); sys.exit(7)\n"


OUTSIDE = AGENT.replace("@looptape.tool\n", "").replace("@looptape.tool(side_effect='mutate')\n", "").replace(
    "import looptape, pathlib", "import pathlib"
).replace(
    "    library = importlib.import_module('httpx2' if importlib.util.find_spec('httpx2') else 'httpx')\n"
    "    reply = library.post(os.environ['ANTHROPIC_BASE_URL'] + '/v1/messages', json=body, timeout=60)\n"
    "    reply.raise_for_status()\n"
    "    return reply.json()\n",
    "    request = urllib.request.Request(os.environ['ANTHROPIC_BASE_URL'] + '/v1/messages', json.dumps(body).encode(),\n"
    "        {'content-type': 'application/json'})\n"
    "    try: return json.loads(urllib.request.urlopen(request).read())\n"
    "    except urllib.error.HTTPError as e: sys.exit(f'HTTP {e.code} {e.read().decode()}')\n",
)  # fmt: skip
OUTSIDE_MAIN = OUTSIDE + "print(json.dumps(loop(os.environ.get('PROMPT', 'What is the revenue?')))); sys.exit(7)\n"


def steps(count=4):
    calls = [
        Step(text=f"Turn {n}", calls=[Call("search", {"q": f"part {n}"}, f"toolu_{n:04d}")]) for n in range(1, count)
    ]
    return [*calls, Step(text="It is 412 million.")]


def recorded(here, server, code=7, text=MAIN, **more):
    """Records the agent; what it printed. The server forgets, the marks of the tools go."""
    here.write("agent.py", text)
    got, out, err = here.run(PYTHON, "agent.py", by=CLI, **more)
    assert (got, err) == (code, "")
    server.log.clear()
    (here.work / "ran").unlink(missing_ok=True)
    return out


def replay(here, *options, command=("agent.py",), run="last", **more):
    return here.run(*options, "--", PYTHON, *command, by=[*REPLAY, run], **more)


def ran(here):
    file = here.work / "ran"
    return file.read_text().split() if file.exists() else []


def runs(here):
    with open_store(here.home) as store:
        return sorted(store.runs(Filter(limit=0, include_empty=True)), key=lambda r: r.started_at)
