package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gaol/runtime/internal/hostcall"
	"gaol/runtime/internal/sandbox"
)

// HostCommand is a program that the host implements: a value of Options.Commands. Guests find it
// under its name in the last folder of PATH, which is appended to a caller's PATH, too, so that
// programs of the image take precedence. Any program of a run can start it:
//
//	execFileSync('get-weather', ['--json', '{"city":"Oslo"}'])
//
// Programs that set another PATH find it in /usr/libexec/gaol/commands. Scope childProcess
// applies to it as to any program; other permissions do not matter. Its calls are in
// Result.Calls, and Options.Calls bounds them together with calls of functions.
type HostCommand struct {
	// Run performs a call. ctx ends with the run, when the program is killed, or after
	// CallLimits.Timeout. Calls may run concurrently. Any code of the guest may call, with
	// any arguments: check them like a stranger's request. The text of an error, or that
	// the call exceeded a limit, is printed on standard error, and the program exits with 1.
	Run func(ctx context.Context, c CommandCall) (CommandResult, error)

	// Stdin makes the program read its standard input until its end, before Run. Without it,
	// the input is not touched: programs that start others often leave it open.
	Stdin bool
}

// CommandCall is a call of a command.
type CommandCall struct {
	Name  string
	Args  []string // without the name; together with Stdin at most CallLimits.Arguments bytes
	Stdin []byte   // empty without HostCommand.Stdin
}

// CommandResult is the program's output, at most CallLimits.Result bytes, and its exit code.
type CommandResult struct {
	Stdout, Stderr []byte
	ExitCode       int // 0 to 255
}

// commands are the commands of a runtime, by name.
type commands struct {
	mu     sync.Mutex
	byName map[string]HostCommand
}

func (c *commands) get(name string) (HostCommand, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	command, ok := c.byName[name]
	return command, ok
}

// checkCommands returns an error about the commands of the caller.
func checkCommands(given map[string]HostCommand) error {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if err := sandbox.CheckCommand(name); err != nil {
			return err
		}
		if given[name].Run == nil {
			return fmt.Errorf("%s: a command without Run", name)
		}
	}
	if len(given) > sandbox.MaxCommands {
		return fmt.Errorf("%d commands, the limit is %d", len(given), sandbox.MaxCommands)
	}
	return nil
}

// AddCommands adds commands, which active runs find, too, and replaces commands of the same name.
// The runtime must have been created with Options.Commands, which may be empty. A runtime can have
// at most 1,024 commands.
func (rt *NodeRuntime) AddCommands(given map[string]HostCommand) (err error) {
	defer wrap(&err, "add commands")
	if rt.alive.Err() != nil {
		return ErrClosed
	}
	if rt.opts.Commands == nil {
		return optionError("Commands", "the runtime was created without: it may be empty, but not nil")
	}
	if err := checkCommands(given); err != nil {
		return optionError("Commands", "%w", err)
	}
	c := &rt.commands
	c.mu.Lock()
	defer c.mu.Unlock()
	all := maps.Clone(c.byName)
	maps.Copy(all, given)
	if len(all) > sandbox.MaxCommands {
		return optionError("Commands", "%d commands, the limit is %d", len(all), sandbox.MaxCommands)
	}
	c.byName = all
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if err := rt.sandbox.AddCommand(name); err != nil {
			return err
		}
	}
	return nil
}

// commandNames returns the names for the sandbox, or nil without Options.Commands.
func (s settings) commandNames() []string {
	if s.Commands == nil {
		return nil
	}
	return append([]string{}, slices.Sorted(maps.Keys(s.Commands))...)
}

// runCommands are the calls of commands of one run.
type runCommands struct {
	run   *Process
	ended context.Context // closes the calls
	end   context.CancelFunc
	slots chan struct{} // a semaphore
	work  sync.WaitGroup
}

// openCalls makes what performs the run's calls of functions and commands.
func (p *Process) openCalls() {
	var out *hostcall.Writer
	if p.control != nil {
		out = p.control.out
	}
	p.calls = hostcall.New(p.limit, p.functions, p.limits, out)
	if p.control != nil {
		p.control.calls = p.calls
	}
	if p.rt.opts.Commands != nil {
		c := &runCommands{run: p, slots: make(chan struct{}, maxOpenCalls(p.limits))}
		c.ended, c.end = context.WithCancel(context.Background())
		p.commands, p.command.OnCommand = c, c.begin
	}
}

// maxOpenCalls returns the maximum number of a run's concurrent calls of commands. It bounds the
// descriptors of this process, and the memory before and after the function runs.
func maxOpenCalls(l CallLimits) int {
	const calls, bytes = 64, 64 << 20
	return max(1, min(calls, l.Concurrent, int(bytes/max(l.Arguments, l.Result, 1))))
}

// begin takes over a call. If there are too many, the program tries again.
func (c *runCommands) begin(name string, call sandbox.CommandCall) error {
	command, exists := c.run.rt.commands.get(name)
	if !exists {
		return unix.EACCES
	}
	select {
	case c.slots <- struct{}{}:
	default:
		return unix.EAGAIN
	}
	unwatch := context.AfterFunc(c.ended, call.Close)
	c.work.Go(func() {
		c.serve(call, name, command)
		unwatch()
		call.Close()
		<-c.slots
	})
	return nil
}

// serve performs a call and replies. Without a reply, the program prints that the call has ended.
func (c *runCommands) serve(call sandbox.CommandCall, name string, command HostCommand) {
	_ = call.SetDeadline(time.Now().Add(c.run.limits.Timeout)) // it supports deadlines
	request, size, err := c.read(call, command)
	var res CommandResult
	switch {
	case err == nil:
		request.Name = name
		_ = call.SetDeadline(time.Time{})
		res, err = c.perform(call, command, request, size)
	case errors.Is(err, sandbox.ErrCallSize):
		err = c.run.calls.Do(name, size, nil) // refuses and records it
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("the call has taken longer than %v", c.run.limits.Timeout)
	default: // the program has ended, or is another one
		return
	}
	if cause, _ := endReason(c.run.limit); c.run.limit.Err() != nil && cause == CauseCanceled {
		<-c.ended.Done() // the program is killed, and must not end before because its call has
	}
	if c.ended.Err() != nil || errors.Is(err, hostcall.ErrStopped) {
		return
	}
	if err != nil {
		res = CommandResult{Stderr: []byte(name + ": " + err.Error() + "\n"), ExitCode: 1}
	}
	_ = call.SetDeadline(time.Now().Add(c.run.limits.Timeout))
	_ = call.Reply(res.Stdout, res.Stderr, uint8(res.ExitCode)) // fails if the program has ended
}

// read reads a call. The size is that of the arguments and the input.
func (c *runCommands) read(call sandbox.CommandCall, command HostCommand) (request CommandCall, size int, err error) {
	request.Args, err = call.Arguments(c.run.limits.Arguments)
	for _, arg := range request.Args {
		size += len(arg) + 1
	}
	if err == nil && command.Stdin {
		request.Stdin, err = call.Input(c.run.limits.Arguments - int64(size))
		size += len(request.Stdin)
	}
	if errors.Is(err, sandbox.ErrCallSize) {
		size = int(c.run.limits.Arguments) + 1
	}
	return request, size, err
}

// perform calls the host's function.
func (c *runCommands) perform(call sandbox.CommandCall, command HostCommand, request CommandCall, size int) (res CommandResult, err error) {
	c.run.waitForFeed()
	err = c.run.calls.Do(request.Name, size, func(ctx context.Context) (int, error) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		go func() { // ends when the call is closed
			call.Wait()
			cancel(errProgramEnded)
		}()
		r, err := command.Run(ctx, request)
		switch {
		case errors.Is(context.Cause(ctx), errProgramEnded):
			err = errProgramEnded // whatever the function made of it
		case err == nil:
			err = r.check(c.run.limits.Result)
		}
		if err != nil {
			return 0, err
		}
		res = r // read only if Do returns no error, which is after this
		return len(r.Stdout) + len(r.Stderr), nil
	})
	if err != nil {
		return CommandResult{}, err
	}
	return res, nil
}

// errProgramEnded is the error of a call whose program was killed.
var errProgramEnded = errors.New("the program ended first")

// check returns why the result can't be sent.
func (r CommandResult) check(most int64) error {
	switch n := len(r.Stdout) + len(r.Stderr); {
	case int64(n) > most:
		return &CallError{Code: CodeResult, Message: fmt.Sprintf("the outputs have %d bytes, the limit is %d", n, most)}
	case r.ExitCode < 0 || r.ExitCode > 255:
		return &CallError{Code: CodeResult, Message: fmt.Sprintf("the exit code %d is not between 0 and 255", r.ExitCode)}
	}
	return nil
}
