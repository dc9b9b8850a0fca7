package main

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"
	"strconv"

	"gaol/cmd/gaol/bench"
	"gaol/runtime"
)

// callTimes is what programs/calls.mjs prints.
type callTimes struct {
	Median float64 // microseconds of one call, made one after the other
	Rate   float64 // calls a second, made in parallel
}

// called returns a measurement of calls of a host function, beside what a program without
// them would use: HTTP to a server in this process, by bare node, over persistent
// connections.
func (x *fixtures) called(value func(callTimes) float64) bench.Measurement {
	return func(ctx context.Context, m *bench.Measurer) (s, _ bench.Samples, err error) {
		server, address, err := serveAdd()
		if err != nil {
			return nil, nil, err
		}
		p := newProgram("calls", strconv.Itoa(x.work(1000)))
		err = m.WithRuntimes(ctx, func(o *runtime.Options) {
			raiseLimits(o)
			o.Bindings = map[string]any{"add": runtime.NewFunction2("adds", add)}
		}, func(all bench.Runtimes) error {
			s, _, err = bench.Sample(ctx, m.Options.Fewer(10), m.Sides(), func(side bench.Side) (float64, error) {
				t, err := callsOn(ctx, m, p, all[side], address)
				return value(t), err
			})
			return err
		})
		return s, nil, errors.Join(err, server.Close())
	}
}

// callsOn runs the program once: in rt, or on bare node if rt is nil.
func callsOn(ctx context.Context, m *bench.Measurer, p bench.Program, rt *runtime.NodeRuntime, address string) (t callTimes, err error) {
	var printed []byte
	if rt == nil {
		p.Args = append(slices.Clone(p.Args), address)
		printed, err = m.Bare.Output(ctx, p)
	} else {
		var res *runtime.Result
		if res, err = p.Run(ctx, rt, nil); err == nil {
			printed = res.Stdout
		}
	}
	if err == nil {
		err = json.Unmarshal(printed, &t)
	}
	return t, err
}

func add(_ context.Context, a, b int) (int, error) { return a + b, nil }

// serveAdd serves add on the loopback interface.
func serveAdd() (s *http.Server, address string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	s = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var args [2]int
		if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		sum, _ := add(r.Context(), args[0], args[1])
		_ = json.NewEncoder(w).Encode(sum) // fails if the client closed the connection
	})}
	go func() { _ = s.Serve(l) }() // returns when s is closed
	return s, "http://" + l.Addr().String(), nil
}
