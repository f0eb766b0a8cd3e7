-- A client with what Neovim brings. The daemon's socket is named by DWELL_SOCKET, the way by the argument: `rpc` is
-- vim.lsp.rpc.connect, `pipe` is a vim.loop pipe with JSON lines, which is all that older releases have.
-- Run with `nvim --clean -l neovim.lua rpc`, or `nvim --clean --headless -c "luafile neovim.lua"`.

local path = vim.env.DWELL_SOCKET
local events = {}

local function on_notification(method, params)
  if method == "session/event" then
    table.insert(events, params.result)
  end
end

-- Each way gives `request(method, params, callback(error, result))` and `close()`.
local ways = {}

function ways.rpc()
  local client = vim.lsp.rpc.connect(path)({
    notification = on_notification,
    server_request = function()
      return nil, { code = -32601, message = "nothing is asked of this client" }
    end,
    on_exit = function() end,
    on_error = function(code, error)
      print("rpc error", code, vim.inspect(error))
    end,
  })
  return { request = client.request, close = client.terminate }
end

function ways.pipe()
  local pipe = assert(vim.loop.new_pipe(false))
  local waiting, rest, number, connected = {}, "", 0, false
  pipe:connect(path, function(error)
    assert(not error, error)
    connected = true
    pipe:read_start(function(_, chunk)
      rest = rest .. (chunk or "")
      while true do
        local line, tail = rest:match("^([^\n]*)\n(.*)$")
        if not line then
          return
        end
        rest = tail
        vim.schedule(function()
          local message = vim.json.decode(line)
          if message.method then
            on_notification(message.method, message.params)
          elseif waiting[message.id] then
            waiting[message.id](message.error, message.result)
          end
        end)
      end
    end)
  end)
  vim.wait(30000, function() return connected end, 5)
  return {
    request = function(method, params, callback)
      number = number + 1
      waiting[number] = callback
      -- An empty table is a list to this encoder, and none at all to the daemon.
      pipe:write(vim.json.encode({ jsonrpc = "2.0", id = number, method = method, params = params }) .. "\n")
    end,
    close = function() pipe:close() end,
  }
end

local way = ways[(_G.arg and _G.arg[1]) or vim.env.DWELL_WAY or "rpc"]
local client = way()

local function wait(what, done)
  assert(vim.wait(30000, done, 5), "waited for " .. what)
end

local function call(method, params)
  local finished, failure, answer = false, nil, nil
  client.request(method, params, function(error, result)
    finished, failure, answer = true, error, result
  end)
  wait(method, function() return finished end)
  assert(not failure or failure == vim.NIL, vim.inspect(failure))
  return answer
end

-- The next event of a kind; those before it are passed over.
local function event(kind)
  local found
  wait(kind, function()
    while not found and #events > 0 do
      local one = table.remove(events, 1)
      found = one.type == kind and one or nil
    end
    return found ~= nil
  end)
  return found
end

local function check(got, wanted)
  assert(vim.deep_equal(got, wanted), vim.inspect(got) .. " is not " .. vim.inspect(wanted))
end

local hello = call("initialize", { protocol = 1, client = { name = "neovim.lua", version = "1" } })
check(hello.protocol, 1)
call("daemon/status", {})
local session = call("session/create", { cwd = vim.loop.cwd(), provider = "script" }).id
call("session/attach", { session = session })

-- A turn with a call that has to be allowed.
local script = 'say grün 😀\ndo execute {"command": "echo ran > neovim.txt"}\nsay , done'
call("turn/start", { session = session, text = script })
local asked = event("approval_asked")
check(asked.arguments, { command = "echo ran > neovim.txt" })
call("approval/answer", { approval = asked.approval, answer = "allow" })
check(event("turn_ended").status, "completed")
local said = ""
for _, one in ipairs(call("session/history", { session = session }).events) do
  said = said .. (one.type == "said" and one.text or "")
end
check(said, "grün 😀, done")

-- One that is stopped.
call("turn/start", { session = session, text = "wait 60000" })
call("turn/cancel", { session = session })
check(event("turn_ended").status, "cancelled")

-- Several calls under way at once.
local answers = 0
for _ = 1, 50 do
  client.request("session/get", { session = session }, function() answers = answers + 1 end)
end
wait("50 answers", function() return answers == 50 end)

-- The connection goes, and whatever happens meanwhile is there afterwards, once.
local last = call("session/get", { session = session }).seq
client.close()
events = {}
client = way()
call("turn/wait", { turn = call("turn/start", { session = session, text = "say meanwhile" }).turn })
call("session/attach", { session = session, after = last })
check(event("turn_started").seq, last + 1)
check(event("said").text, "meanwhile")

-- An answer of more than 5 MB.
local piece = ("ü"):rep(4096)
local turn = call("turn/start", { session = session, text = "repeat 640 " .. piece }).turn
assert(call("turn/wait", { turn = turn }).reply == piece:rep(640), "the long reply differs")

client.close()
io.stdout:write("scenario passed\n")
io.stdout:flush()
os.exit(0)
