package main

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"gaol/runtime"
)

// runProgram replies when the program has ended. The request's context ends the program if
// the client disconnects.
func runProgram(w http.ResponseWriter, r *http.Request, rt *runtime.NodeRuntime, q request) error {
	res, err := rt.Run(r.Context(), q.Code, runtime.RunOptions{Stdin: strings.NewReader(q.Stdin), Timeout: q.timeout()})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(newResponse(res))
}

// streamProgram sends output as server-sent events. A slow client slows the program down;
// nothing is buffered without bound.
func streamProgram(w http.ResponseWriter, r *http.Request, rt *runtime.NodeRuntime, q request) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(name string, data any) {
		if writeEvent(w, name, data) != nil {
			cancel() // ends the program; the client is gone
		}
	}
	res, err := rt.Run(ctx, q.Code, runtime.RunOptions{Stdin: strings.NewReader(q.Stdin), Timeout: q.timeout(), OnEvent: func(e runtime.Event) {
		switch e := e.(type) {
		case runtime.StdoutEvent:
			send("stdout", string(e.Data))
		case runtime.StderrEvent:
			send("stderr", string(e.Data))
		}
	}})
	if res == nil {
		send("exit", response{Error: err.Error()})
		return nil
	}
	send("exit", newResponse(res))
	return nil
}
