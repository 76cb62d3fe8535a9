// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"k8s.io/klog/v2"
)

// Command is the only argument of a process that Process.Do has started: it calls Serve.
const Command = "run"

// IsChild reports whether Process.Do has started this process.
func IsChild() bool { return len(os.Args) == 2 && os.Args[1] == Command }

// Progress receives how much virtual time has passed, and how many scheduling attempts were made.
type Progress func(passed time.Duration, attempts int64)

// message is a line of a child's output: its progress, and at the end its result or its error.
type message struct {
	Passed   time.Duration `json:"passed,omitempty"`
	Attempts int64         `json:"attempts,omitempty"`
	Ended    bool          `json:"ended,omitempty"`
	Result   interface{}   `json:"result,omitempty"`
	Error    string        `json:"error,omitempty"`
}

// output is the standard output of a child. One goroutine at a time uses it.
type output struct {
	encoder *json.Encoder
	// second is the one in which the progress was sent last.
	second int64
}

// progress sends the progress, once a second. The second is a real one, which the time package hides in a bubble.
func (o *output) progress(passed time.Duration, attempts int64) {
	var now syscall.Timeval
	if err := syscall.Gettimeofday(&now); err == nil && int64(now.Sec) != o.second {
		o.second = int64(now.Sec)
		o.send(message{Passed: passed, Attempts: attempts})
	}
}

func (o *output) send(m message) {
	if o.encoder.Encode(m) != nil {
		os.Exit(2) // Nobody reads the result.
	}
}

// end sends the result or the error, and ends the process.
func (o *output) end(result interface{}, err error) {
	if err != nil {
		o.send(message{Ended: true, Error: err.Error()})
	} else {
		o.send(message{Ended: true, Result: result})
	}
	os.Exit(0)
}

// Serve does the task that Process.Do has sent, and ends the process. It decodes the task into a pointer, and calls start,
// which returns when the simulation starts, and then simulate in a bubble whose clock starts there. simulate returns the
// result.
func Serve(task interface{}, start func() (time.Time, error), simulate func(progress Progress) (interface{}, error)) {
	// A simulation does one thing at a time. More processors would only wake each other.
	runtime.GOMAXPROCS(1)
	// With one processor, a collection takes long, and each write of a pointer costs more meanwhile.
	// This memory is never touched, and so takes none. The garbage collector counts it, and lets the heap grow by as much
	// more before it begins: small heaps would be collected many times in a second.
	headroom := make([]byte, 1<<27)
	defer runtime.KeepAlive(headroom)
	out := &output{encoder: json.NewEncoder(os.Stdout)}
	if err := silenceLog(); err != nil {
		out.end(nil, err)
	}
	requests := json.NewDecoder(os.Stdin)
	if err := requests.Decode(task); err != nil {
		out.end(nil, err)
	}
	go func() {
		// A second line interrupts the simulation. The input ends with the process that has started this one.
		for {
			var again json.RawMessage
			if requests.Decode(&again) != nil {
				os.Exit(2)
			}
			Interrupt()
		}
	}()
	at, err := start()
	if err != nil {
		out.end(nil, err)
	}
	bubble(at, func() { out.end(simulate(out.progress)) })
}

// silenceLog drops the scheduler's log.
func silenceLog() error {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	klog.SetOutput(io.Discard)
	return flags.Parse([]string{"-logtostderr=false", "-stderrthreshold=FATAL"})
}

// Process is how Do starts a process.
type Process struct {
	// Environment has variables in addition to those of this process, as NAME=VALUE.
	Environment []string
	// Progress is called now and then, unless it is nil.
	Progress Progress
	// Interrupt, when it is closed, makes the process return what it has.
	Interrupt <-chan struct{}
}

// Do starts this program again to do a task in Serve, and decodes the result into a pointer. A simulation has a process,
// because metrics and the random source are global. The process ends with the context.
func (p Process) Do(ctx context.Context, task, result interface{}) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	process := exec.CommandContext(ctx, program, Command)
	process.Env = append(os.Environ(), p.Environment...)
	// A terminal sends Ctrl-C to all processes of its group; a child gets it from here.
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	process.Stderr = os.Stderr
	in, err := process.StdinPipe()
	if err != nil {
		return err
	}
	out, err := process.StdoutPipe()
	if err != nil {
		return err
	}
	if err := process.Start(); err != nil {
		return err
	}
	requests := json.NewEncoder(in)
	_ = requests.Encode(task) // If it has ended, that is reported below.
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-p.Interrupt:
			_ = requests.Encode(task) // If it has just ended, it needs none.
		case <-done:
		}
	}()
	last := p.receive(out, result)
	err = process.Wait()
	switch {
	case last.Error != "":
		return errors.New(last.Error)
	case !last.Ended:
		return fmt.Errorf("a run ended early: %v; next: check the memory of this machine, or use fewer --jobs", err)
	}
	return nil
}

// receive reads the messages of a child, and returns the last one.
func (p Process) receive(out io.Reader, result interface{}) (last message) {
	decoder := json.NewDecoder(bufio.NewReaderSize(out, 1<<20))
	for {
		next := message{Result: result}
		if err := decoder.Decode(&next); err != nil {
			return last
		}
		if last = next; p.Progress != nil && !next.Ended {
			p.Progress(next.Passed, next.Attempts)
		}
	}
}
