#!/usr/bin/env bash
# A client out of a shell and socat: JSON lines to the daemon's socket, which is named by DWELL_SOCKET.
set -euo pipefail

# Opens a connection: what is written to 4 goes to the daemon, and 3 reads what it says.
open() {
  coproc LINK { exec socat -t 30 - "UNIX-CONNECT:$DWELL_SOCKET"; }
  # The shell forgets LINK_PID once it has seen the end of socat.
  link=$LINK_PID
  exec 3<&"${LINK[0]}" 4>&"${LINK[1]}"
}

fail() { printf '%s\n' "$*" >&2; exit 1; }

# The value of a string or number in a line of JSON, by its name. The lines hold no other member of that name before it.
member() { sed -nE "s/.*\"$1\":\"?([^\",}]*).*/\1/p" <<<"$2"; }

# Sends a request.
send() { printf '{"jsonrpc":"2.0","id":%s,"method":"%s","params":%s}\n' "$1" "$2" "$3" >&4; }

# Reads until a line has these words.
await() {
  local line
  while IFS= read -r -t 30 line <&3; do
    case $line in *"$1"*) printf '%s' "$line"; return ;; esac
  done
  fail "waited for $1"
}

open
send 1 initialize '{"protocol":1,"client":{"name":"socat.sh","version":"1"}}'
await '"id":1,' | grep -q '"protocol":1' || fail "another protocol"
send 2 session/create "{\"cwd\":\"$PWD\",\"provider\":\"script\"}"
session=$(member id "$(await '"provider":"script"' | sed 's/.*"result"://')")
send 3 session/attach "{\"session\":\"$session\"}"
await '"id":3,' >/dev/null

# A turn with a call that has to be allowed.
script='say grün 😀\ndo execute {\"command\": \"echo ran > socat.txt\"}\nsay , done'
send 4 turn/start "{\"session\":\"$session\",\"text\":\"$script\"}"
approval=$(member approval "$(await '"type":"approval_asked"')")
send 5 approval/answer "{\"approval\":\"$approval\",\"answer\":\"allow\"}"
await '"type":"turn_ended"' | grep -q '"status":"completed"' || fail "the turn did not end well"
[ "$(cat socat.txt)" = ran ] || fail "the command did not run"

# One that is stopped.
send 6 turn/start "{\"session\":\"$session\",\"text\":\"wait 60000\"}"
send 7 turn/cancel "{\"session\":\"$session\"}"
await '"type":"turn_ended"' | grep -q '"status":"cancelled"' || fail "the turn was not cancelled"

# Several calls under way at once, the last of which tells the newest event.
for number in $(seq 100 149); do send "$number" session/get "{\"session\":\"$session\"}"; done
last=$(member seq "$(await '"id":149,')")

# The connection goes, and whatever happens meanwhile is there afterwards.
kill "$link"
wait "$link" 2>/dev/null || true
printf '{"jsonrpc":"2.0","id":1,"method":"turn/start","params":{"session":"%s","text":"say meanwhile"}}\n' "$session" |
  socat -t 30 - "UNIX-CONNECT:$DWELL_SOCKET" | grep -qm 1 '"turn"' || fail "no turn began"
open
send 8 session/attach "{\"session\":\"$session\",\"after\":$last}"
await '"type":"turn_started"' | grep -q "\"seq\":$((last + 1))," || fail "an event is missing"
await '"type":"said"' | grep -q meanwhile || fail "another text"
await '"type":"turn_ended"' >/dev/null

# An answer of more than 5 MB.
piece=$(printf 'ü%.0s' $(seq 4096))
send 9 turn/start "{\"session\":\"$session\",\"text\":\"repeat 640 $piece\"}"
# The shell would read it byte by byte.
timeout 30 grep -m 1 '"type":"turn_ended"' <&3 >long.txt
[ "$(wc -c <long.txt)" -gt 5000000 ] || fail "the long answer has $(wc -c <long.txt) bytes"

kill "$link"
echo "scenario passed"
