package main

import (
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
	stream := rt.FollowRun(r.Context(), q.Code, runtime.RunOptions{Stdin: strings.NewReader(q.Stdin), Timeout: q.timeout()})
	w.Header().Set("Content-Type", "text/event-stream")
	for event := range stream.Events() {
		var err error
		switch e := event.(type) {
		case runtime.StdoutEvent:
			err = writeEvent(w, "stdout", string(e.Data))
		case runtime.StderrEvent:
			err = writeEvent(w, "stderr", string(e.Data))
		case runtime.ExitEvent:
			err = writeEvent(w, "exit", exit(e))
		}
		if err != nil {
			break // ends the program; the client is gone
		}
	}
	return nil
}

func exit(e runtime.ExitEvent) response {
	if e.Result == nil {
		return response{Error: e.Err.Error()}
	}
	return newResponse(e.Result)
}
