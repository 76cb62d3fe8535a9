// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"k8s.io/component-base/term"
)

// progress shows one line on a terminal: the virtual time, attempts per second, and the runs that have ended.
type progress struct {
	out   io.Writer
	mutex sync.Mutex
	began time.Time
	runs  []runProgress
}

// runProgress is the progress of a run.
type runProgress struct {
	passed   time.Duration
	attempts int64
	ended    bool
}

// newProgress returns a progress that is shown only on a terminal.
func newProgress(out io.Writer, runs int) *progress {
	p := &progress{began: time.Now(), runs: make([]runProgress, runs)}
	if file, ok := out.(*os.File); ok {
		if _, _, err := term.TerminalSize(file); err == nil {
			p.out = out
		}
	}
	return p
}

// set stores and shows the progress of a run.
func (p *progress) set(run int, passed time.Duration, attempts int64) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.runs[run] = runProgress{passed: passed, attempts: attempts}
	p.show(p.text())
}

// end shows that a run has ended.
func (p *progress) end(run int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.runs[run].ended = true
	p.show(p.text())
}

func (p *progress) text() string {
	ended, passed, attempts := 0, time.Duration(0), int64(0)
	for _, run := range p.runs {
		attempts += run.attempts
		if run.ended {
			ended++
		} else if run.passed > passed {
			passed = run.passed
		}
	}
	since := time.Since(p.began)
	text := fmt.Sprintf("%d of %d runs, simulated time %s, %.0f attempts per second", ended, len(p.runs),
		passed.Truncate(time.Second), float64(attempts)/since.Seconds())
	if ended > 0 {
		text += fmt.Sprintf(", %s left", (since * time.Duration(len(p.runs)-ended) / time.Duration(ended)).Round(time.Second))
	}
	return text
}

// clear removes the line.
func (p *progress) clear() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.show("")
}

// show replaces the line.
func (p *progress) show(text string) {
	const erase = "\r\x1b[K"
	if p.out != nil {
		fmt.Fprintf(p.out, "%s%s\r", erase, text)
	}
}
