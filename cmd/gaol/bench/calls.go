package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"

	"gaol/runtime"
)

// callTimes is what programs/calls.mjs prints.
type callTimes struct {
	Median float64 // microseconds of one call, made one after the other
	Rate   float64 // calls a second, made all at once
}

// calls measures calls of a host function beside what a program has without them: HTTP
// to a server in this process, by bare node, with connections that stay open.
func (m *measurer) calls(ctx context.Context) (failed error) {
	address, stop, err := serveAdd()
	if err != nil {
		return err
	}
	defer func() { failed = errors.Join(failed, stop()) }()
	ample := map[Side]*runtime.NodeRuntime{}
	defer func() { failed = errors.Join(failed, closeAll(ample)) }()
	for _, side := range m.jailed() {
		o := ampleOptions(m.create(side))
		o.Bindings = map[string]any{"add": runtime.NewFunction2("adds", add)}
		if ample[side], err = runtime.Create(ctx, o); err != nil {
			delete(ample, side)
			return err
		}
	}
	w, name := m.scaled(workload{program: calls, what: "call of a host function"})
	medians, rates := map[Side][]float64{}, map[Side][]float64{}
	err = m.turns(ctx, m.options.fewer(10), func(side Side) error {
		t, err := m.callsOn(ctx, w.program, ample[side], address)
		medians[side], rates[side] = append(medians[side], t.Median), append(rates[side], t.Rate)
		return err
	})
	if err != nil {
		return err
	}
	m.addCalls(name, mediansOf(medians), mediansOf(rates))
	return nil
}

func (m *measurer) addCalls(name string, medians, rates Values) {
	jailed := Values{}
	for _, side := range m.jailed() {
		jailed[side] = medians[side]
	}
	m.add(alone(callID, name+", one at a time, p50", "µs", jailed),
		timesAsFast(callHTTPID, name+", against HTTP", "µs", medians, "HTTP over loopback by bare node"),
		againstBare(callsID, name+", at once", "calls/s", rates))
}

func mediansOf(samples map[Side][]float64) Values {
	v := Values{}
	for side, s := range samples {
		v[side] = percentile(s, 50)
	}
	return v
}

// callsOn has the program run once: on bare node, if rt is nil.
func (m *measurer) callsOn(ctx context.Context, p program, rt *runtime.NodeRuntime, address string) (t callTimes, err error) {
	var printed []byte
	if rt == nil {
		p.more = []string{address}
		if printed, err = m.bare.output(ctx, p); err != nil {
			return t, err
		}
	} else {
		res, err := rt.Run(ctx, p.code(), p.runOptions())
		if err != nil {
			return t, err
		}
		if res.ExitCode != 0 {
			return t, fmt.Errorf("%s ended with exit code %d, cause %q: %.300s", p.file(), res.ExitCode, res.Cause, res.Stderr)
		}
		printed = res.Stdout
	}
	return t, json.Unmarshal(printed, &t)
}

func add(_ context.Context, a, b int) (int, error) { return a + b, nil }

// serveAdd serves add to this machine alone.
func serveAdd() (address string, stop func() error, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var args [2]int
		if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		sum, err := add(r.Context(), args[0], args[1])
		if err == nil {
			err = json.NewEncoder(w).Encode(sum)
		}
		if err != nil {
			panic(http.ErrAbortHandler) // the client has gone
		}
	})}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	return "http://" + l.Addr().String(), func() error {
		err := s.Close()
		if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
			err = errors.Join(err, ended)
		}
		return err
	}, nil
}
