package session

import (
	"encoding/binary"
	"testing"

	"github.com/coder/websocket"

	protocol "gaol/internal/session"
)

// FuzzSession sends any frames in a session. Each request has one result or error, or the server
// closes the session with the code of the error.
func FuzzSession(f *testing.F) {
	frames := func(list ...[]byte) (text []byte) {
		for _, frame := range list {
			text = binary.BigEndian.AppendUint16(text, uint16(len(frame)))
			text = append(text, frame...)
		}
		return text
	}
	one := func(text string) []byte { return protocol.Append(nil, protocol.KindRequest, 1, []byte(text)) }
	f.Add(frames(one(`{"method":"listSandboxes"}`), protocol.Append(nil, protocol.KindCancel, 1)))
	f.Add(frames(one(`{"method":"runIn","params":{"sandbox":"x","code":"1"}}`), protocol.Append(nil, protocol.KindStdin, 1, []byte("in"))))
	f.Add(frames(one(`{"method":"createSandbox","params":{"globals":{"a":{"c":1}}},"host":{"functions":[{"id":1,"path":["a","b"],"schema":{"type":"array"}}]}}`)))
	f.Add(frames(one(`{"method":"run","params":{"code":"1"}}`), protocol.AppendCredit(nil, 1, protocol.Stdout, 1)))
	f.Add(frames(one(`{"method":"createContext","params":{"sandbox":"x"}}`), one(`{"method":"evaluateCell","params":{"sandbox":"x","context":"c-1","code":""}}`)))
	f.Add(frames(protocol.Append(nil, protocol.KindAnswer, 1, []byte("1")), protocol.Append(nil, protocol.KindFailure, 1, []byte(`{"message":"m"}`))))
	f.Add(frames(one(`{"method":"readFile","params":{"sandbox":"x","path":"/a"}}`), protocol.AppendCredit(nil, 1, protocol.Stdout, 1), protocol.Append(nil, protocol.KindCancel, 1)))
	f.Add(frames(one(`{"method":"writeFile","params":{"sandbox":"x","pathBytes":"L/8=","mode":"600","createParents":true}}`), protocol.Append(nil, protocol.KindStdin, 1, []byte("in")), protocol.Append(nil, protocol.KindStdin, 1)))
	f.Add(frames(one(`{"method":"moveFile","params":{"sandbox":"x","from":"/a","toBytes":"L/8="}}`)))
	f.Add(frames(one(`{"method":"listFiles","params":{"sandbox":"x","path":"/","recursive":true,"limit":10000}}`)))
	f.Add(frames(one(`{"method":"dial","params":{"sandbox":"x","port":3000}}`), protocol.Append(nil, protocol.KindStdin, 1, []byte("GET")), protocol.Append(nil, protocol.KindStdin, 1)))
	f.Add(frames(one(`{"method":"takeSnapshot","params":{"sandbox":"x","name":"a"}}`), one(`{"method":"deleteSnapshot","params":{"name":"../a"}}`)))
	f.Add(frames(one(`{"method":"waitForPort","params":{"sandbox":"x","port":0,"timeoutMs":-1}}`), one(`{"method":"getUsage","params":{"sandbox":"x"}}`)))
	f.Add(frames(one(`{"method":"run","params":{"code":"1"},"events":true,"stdin":true}`), protocol.Append(nil, protocol.KindSignal, 1, []byte("SIGTERM"))))
	url := newServer(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		c := dial(t, url)
		for len(text) >= 2 {
			n := min(int(binary.BigEndian.Uint16(text)), len(text)-2)
			if c.Write(soon(t), websocket.MessageBinary, text[2:2+n]) != nil {
				break // the server has closed the session
			}
			text = text[2+n:]
		}
		const last = 1<<32 - 1
		_ = c.Write(soon(t), websocket.MessageBinary, protocol.Append(nil, protocol.KindRequest, last, []byte(`{"method":"listSandboxes"}`)))
		for {
			_, message, err := c.Read(soon(t))
			if err != nil {
				if code := websocket.CloseStatus(err); code != websocket.StatusProtocolError && code != websocket.StatusPolicyViolation {
					t.Fatalf("%v", err)
				}
				return
			}
			frame, err := protocol.Parse(protocol.Server, message)
			if err != nil {
				t.Fatal(err)
			}
			if frame.ID == last && frame.Kind == protocol.KindResult {
				_ = c.Close(websocket.StatusNormalClosure, "")
				return
			}
		}
	})
}
