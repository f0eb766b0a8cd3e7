"""Uses one MCP server through dwell as the protocol's own tests of clients want it: lists its tools, logs in where that is
needed, and runs each tool. The URL is the last argument; $DWELL_TEST_BINARIES holds dwell and dwelld."""
import json, os, shutil, subprocess, sys, tempfile, time, urllib.request

url = sys.argv[-1]
binaries = os.environ["DWELL_TEST_BINARIES"]
context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
ARGUMENTS = {"add_numbers": {"a": 1, "b": 2}}

home = tempfile.mkdtemp(prefix="dwell-conformance-")
env = {"PATH": os.environ["PATH"], "HOME": home, "XDG_RUNTIME_DIR": home}
env.update({"DWELL_%s_DIR" % part.upper(): os.path.join(home, part) for part in ("config", "data", "state")})
work = os.path.join(home, "work")
for folder in ("work", "config", ".agents"):
    os.mkdir(os.path.join(home, folder))
os.chmod(home, 0o700)
with open(os.path.join(home, "config", "config.toml"), "w") as file:
    file.write("[mcp]\nwait_ms = 20000\n")
entry = {"url": url}
if "client_id" in context:
    entry["oauth"] = {"clientId": context["client_id"], "clientSecret": context.get("client_secret")}
with open(os.path.join(home, ".agents", "mcp.json"), "w") as file:
    json.dump({"mcpServers": {"s": entry}}, file)


def dwell(*args):
    ran = subprocess.run([os.path.join(binaries, "dwell"), *args], cwd=work, env=env, text=True, capture_output=True, timeout=60)
    sys.stderr.write("dwell %s: %s\n%s%s\n" % (args, ran.returncode, ran.stdout, ran.stderr))
    return ran.stdout


def rpc(method, **params):
    return json.loads(dwell("rpc", method, json.dumps(params)) or "null")


def tools(session):
    listed = rpc("tool/list", session=session)
    own = [tool["function"]["name"] for tool in listed["tools"] if tool["source"] == "mcp s"]
    return own, listed["problems"]


def login(session):
    said = rpc("command/run", session=session, line="/mcp login s")
    if said.get("error"):
        return False
    try:
        urllib.request.urlopen(said["output"].splitlines()[-1], timeout=20)
    except OSError as error:
        sys.stderr.write("%s\n" % error)
    for _ in range(100):
        own, problems = tools(session)
        if own:
            return True
        time.sleep(0.1)
    return False


try:
    session = rpc("session/create", cwd=work)["id"]
    own, problems = tools(session)
    for _ in range(3):
        if any("wants a login" in problem for problem in problems) and login(session):
            own, problems = tools(session)
        again = False
        for name in own:
            arguments = ARGUMENTS.get(name.removeprefix("s__"), {})
            result = dwell("run", "--session", session, "--yes", name, json.dumps(arguments))
            again |= "login" in result
        if not again:
            break
        problems = ["wants a login"]
finally:
    dwell("daemon", "stop")
    shutil.rmtree(home, ignore_errors=True)
