// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"kube-scheduler-fork/build/nextstep"
)

// longestLine limits the bytes of a line: no object of an API server is longer.
const longestLine = 16 << 20

// follower writes a file.
type follower struct {
	FollowOptions
	state
	header Header
	// file is nil before a new one begins.
	file   *os.File
	writer *Writer
	// err is the first error of the file.
	err error
	// size is that of the file, and limit that at which a new one begins.
	size, limit int64
	// at is the time of what is written, and since that from which on nothing was missed. Starting is whether it is the start.
	at, since time.Time
	starting  bool
	// alive is until when nothing was missed; zero while all watches go on.
	alive time.Time
	// sessions, arrivals and gaps count what was done.
	sessions, arrivals, gaps int
	// wentBack is whether the clock did.
	wentBack bool
}

func newFollower(options FollowOptions, cluster string) *follower {
	return &follower{FollowOptions: options, state: newState(), header: Header{Source: FromWatches, By: options.By, Cluster: cluster}}
}

// Write implements io.Writer.
func (f *follower) Write(text []byte) (int, error) {
	f.size += int64(len(text))
	return f.file.Write(text)
}

// last returns the time of the last event.
func (f *follower) last() time.Time { return f.header.Start.Add(time.Duration(f.writer.last)) }

// try does it unless there was an error before.
func (f *follower) try(do func() error) {
	if f.err == nil {
		f.err = do()
	}
}

// write writes an event.
func (f *follower) write(event Event) {
	_ = f.apply(event) // It cannot fail, because the state made it.
	if f.err != nil {
		return
	}
	event.Time = Duration(f.at.Sub(f.header.Start).Truncate(time.Millisecond))
	if back := time.Duration(f.writer.last - event.Time); back > 0 {
		if event.Time = f.writer.last; back > time.Second && !f.wentBack {
			f.wentBack = true
			fmt.Fprintf(f.Messages, "warning: the clock went back by %v: the history's time waits for it\n", back)
		}
	}
	if event.Pod != nil || event.Like != "" {
		f.arrivals++
	}
	f.err = f.writer.Write(event)
}

// flush stores what is written.
func (f *follower) flush() {
	f.try(f.writer.Flush)
	f.try(f.file.Sync)
}

// lock returns an error if another process writes the file.
func lock(file *os.File) error {
	if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return fmt.Errorf("%s is written by another process", file.Name())
	}
	return nil
}

// open opens the file and reads it back, if it exists.
func (f *follower) open() error {
	if info, err := os.Stat(f.File); err == nil && !info.Mode().IsRegular() {
		return nextstep.With(fmt.Errorf("%s is not a file", f.File), "the same command with another file")
	}
	file, err := os.OpenFile(f.File, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err == nil {
		if err = lock(file); err == nil {
			err = f.resume(file)
		}
		if f.file == nil {
			file.Close()
		}
	}
	if err != nil {
		return nextstep.With(err, "the same command with another file")
	}
	return nil
}

// resume reads a file back. f.file stays nil if another one begins.
func (f *follower) resume(file *os.File) error {
	content, end, last, ended := bufio.NewReaderSize(file, longestLine), int64(0), Duration(0), false
	for number := 1; ; number++ {
		line, err := content.ReadSlice('\n')
		if err == io.EOF && (len(line) == 0 || number > 1) {
			break // What is cut is written again.
		}
		event := Event{}
		switch {
		case err != nil:
		case number == 1:
			if err = f.accept(line); err == nil && f.Hide != nil {
				return f.retire()
			}
		case ended:
			err = errors.New("it follows the last one")
		default:
			if err = decode(line, &event); err == nil {
				err = f.apply(event)
			}
		}
		if err != nil {
			return fmt.Errorf("%s:%d: the line cannot be continued: %w", f.File, number, err)
		}
		last = max(last, event.Time)
		if ended = event.Last; !ended {
			end += int64(len(line))
		}
	}
	if end == 0 {
		return nil
	}
	f.file, f.size, f.limit, f.writer = file, end, f.MaxSize, &Writer{buffer: bufio.NewWriter(f), last: last}
	f.alive = f.last()
	fmt.Fprintf(f.Messages, "history: %s is continued from %v on\n", f.File, f.alive.Format(time.RFC3339))
	if err := file.Truncate(end); err != nil {
		return err
	}
	_, err := file.Seek(end, io.SeekStart)
	return err
}

// accept reads the header of a file that this cluster's history can continue.
func (f *follower) accept(line []byte) error {
	header := Header{}
	switch err := json.Unmarshal(line, &header); {
	case err != nil || header.Version == 0:
		return errors.New("it is not the header of a history")
	case header.Version != Version:
		return fmt.Errorf("the history has version %d, and this release writes version %d", header.Version, Version)
	case header.Source != FromWatches:
		return errors.New("the history is not one that --follow made")
	case f.Hide == nil && header.Cluster != f.header.Cluster:
		return errors.New("the history is of another cluster, or anonymized")
	}
	f.header.Start = header.Start
	return nil
}

// replace writes the differences to what was there at a time, after a gap, or begins a new file with it.
func (f *follower) replace(at time.Time, objects []map[string]any) {
	f.at, f.since, f.starting = at, at, f.file == nil
	if f.starting {
		f.try(f.begin)
	} else {
		from := f.last()
		if f.alive.After(from) {
			from = f.alive
		}
		if gap := Duration(at.Sub(from).Truncate(time.Millisecond)); gap > 0 {
			f.gaps++
			fmt.Fprintf(f.Messages, "warning: the cluster was not watched for %v: a gap in the history\n", time.Duration(gap))
			f.at, f.since = from, from
			f.write(Event{Gap: &gap, Reason: "the cluster was not watched"})
			f.at = at
		}
	}
	there := map[string]bool{}
	for _, object := range objects {
		there[keyOf(object)] = true
		f.see(object)
	}
	for key := range f.pods {
		if !there[key] {
			f.gone(key)
		}
	}
	for name := range f.nodes {
		if !there[name] {
			f.gone(name)
		}
	}
	if f.starting {
		f.complete()
	}
	f.alive, f.starting = time.Time{}, false
}

// begin begins a new file.
func (f *follower) begin() (err error) {
	if f.file, err = os.OpenFile(f.File+".new", os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	f.header.Start, f.size = f.at.Round(0).UTC().Truncate(time.Millisecond), 0
	if err := lock(f.file); err != nil {
		return err
	}
	if err = f.file.Truncate(0); err == nil {
		f.writer, err = NewWriter(f, f.header, f.Hide)
	}
	return err
}

// complete gives a new file its name, or removes it.
func (f *follower) complete() {
	f.flush()
	f.try(func() error { return os.Rename(f.File+".new", f.File) })
	// What is there at the start may be large.
	if f.limit = max(f.MaxSize, 2*f.size); f.err != nil && f.size > 0 {
		os.Remove(f.File + ".new")
	}
}

// rotate ends the file under another name. A new one begins with the next lists.
func (f *follower) rotate() {
	f.finish()
	f.try(f.retire)
	f.file, f.state = nil, newState()
}

// retire gives the file the name NAME-TIME.EXT.
func (f *follower) retire() error {
	extension := filepath.Ext(f.File)
	name := strings.TrimSuffix(f.File, extension) + "-" + time.Now().UTC().Format("20060102T150405.000000000Z") + extension
	fmt.Fprintf(f.Messages, "history: %s is now %s, and a new one begins\n", f.File, name)
	return os.Rename(f.File, name)
}

// finish writes the last line, and closes the file.
func (f *follower) finish() {
	if f.at = time.Now(); !f.alive.IsZero() {
		f.at = f.alive
	}
	f.write(Event{Last: true})
	f.flush()
	f.try(f.file.Close)
}

// close ends the history, and prints a line about it.
func (f *follower) close() error {
	if f.file != nil {
		f.finish()
		f.file.Close()
	}
	if f.err != nil {
		return nextstep.With(fmt.Errorf("the history ends, because its file cannot be written: %w", f.err),
			"free space or choose another file, then the same command again: it continues what is in the file")
	}
	if f.file != nil {
		fmt.Fprintf(f.Messages, "history: %s: %d pods arrived, %d gaps\n", f.File, f.arrivals, f.gaps)
	}
	return nil
}
