package network

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/coder/websocket"
)

// serveEvents sends three events for each connection, numbered from the last one that the
// client has seen. It sends the next one only after the client has asked for it at /next.
// After the sixth it waits until the client closes the connection, and reports it at /next.
func serveEvents(next chan string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		first := 0
		_, _ = fmt.Sscan(r.Header.Get("Last-Event-ID"), &first) // 0 without one
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-store")
		for id := first + 1; id <= first+3; id++ {
			fmt.Fprintf(w, ": comment\nid: %d\nevent: count\ndata: %d\ndata: more\n\n", id, id)
			if http.NewResponseController(w).Flush() != nil {
				return
			}
			select {
			case <-next:
			case <-r.Context().Done():
				return
			}
		}
		if first > 0 {
			<-r.Context().Done()
			next <- "closed"
		}
	}
}

// Events arrive one by one, and each side sees that the other closes the connection.
func TestEventStream(t *testing.T) {
	ca := newInternet(t)
	next := make(chan string)
	mux := http.NewServeMux()
	mux.HandleFunc("/events", serveEvents(next))
	mux.HandleFunc("/next", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case next <- "":
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("/closed", func(w http.ResponseWriter, r *http.Request) {
		select {
		case text := <-next:
			_, _ = io.WriteString(w, text)
		case <-r.Context().Done():
		}
	})
	serve(t, ca, &http.Server{Handler: mux})
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) { compare(t, ca, "events.mjs", scheme+"://"+host) })
	}
}

// serveWebSocket sends messages back, and closes the connection when it is asked to.
func serveWebSocket(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"b", "a"}, CompressionMode: websocket.CompressionContextTakeover})
	if err != nil {
		return
	}
	c.SetReadLimit(8 << 20)
	for {
		kind, message, err := c.Read(r.Context())
		switch {
		case err != nil:
			_ = c.CloseNow()
			return
		case string(message) == "close":
			_ = c.Close(4001, "as you like")
			return
		case string(message) == "cut":
			_ = c.CloseNow()
			return
		}
		if c.Write(r.Context(), kind, message) != nil {
			return
		}
	}
}

// Node's own WebSocket carries messages in both directions.
func TestWebSocket(t *testing.T) {
	ca := newInternet(t)
	serve(t, ca, &http.Server{Handler: http.HandlerFunc(serveWebSocket)})
	for _, scheme := range []string{"ws", "wss"} {
		t.Run(scheme, func(t *testing.T) { compare(t, ca, "websocket.mjs", scheme+"://"+host) })
	}
}
