package bench

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"

	"gaol/runtime"
)

// callTimes is what programs/calls.mjs prints.
type callTimes struct {
	Median float64 // microseconds of one call, made one after the other
	Rate   float64 // calls a second, made all at once
}

// calls measures calls of a host function, beside what a program without them would
// use: HTTP to a server in this process, by bare node, over persistent connections.
func (m *measurer) calls(ctx context.Context) (failed error) {
	address, stop, err := serveAdd()
	if err != nil {
		return err
	}
	defer func() { failed = errors.Join(failed, stop()) }()
	return m.withRuntimes(ctx, func(o *runtime.Options) {
		raiseLimits(o)
		o.Bindings = map[string]any{"add": runtime.NewFunction2("adds", add)}
	}, func(all runtimes) error {
		w, name := m.scaled(workload{program: calls, what: "call of a host function"})
		rates := Samples{}
		times, err := m.values(ctx, m.options.fewer(10), func(side Side) (float64, error) {
			t, err := m.callsOn(ctx, w.program, all[side], address)
			*rates.of(side) = append(*rates.of(side), t.Rate)
			return t.Median, err
		})
		if err == nil {
			m.addCalls(name, times.percentiles(50), rates.percentiles(50))
		}
		return err
	})
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

// callsOn runs the program once: in rt, or on bare node if rt is nil.
func (m *measurer) callsOn(ctx context.Context, p program, rt *runtime.NodeRuntime, address string) (t callTimes, err error) {
	var printed []byte
	if rt == nil {
		p.more = []string{address}
		if printed, err = m.bare.output(ctx, p); err != nil {
			return t, err
		}
	} else {
		res, err := rt.Run(ctx, p.code(), p.runOptions())
		if err == nil {
			err = succeeded(p, res)
		}
		if err != nil {
			return t, err
		}
		printed = res.Stdout
	}
	return t, json.Unmarshal(printed, &t)
}

func add(_ context.Context, a, b int) (int, error) { return a + b, nil }

// serveAdd serves add on the loopback interface.
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
		sum, _ := add(r.Context(), args[0], args[1])
		_ = json.NewEncoder(w).Encode(sum) // fails if the client closed the connection
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
