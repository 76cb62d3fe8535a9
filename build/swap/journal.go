// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"kube-scheduler-fork/build/nextstep"
)

// journal records a change of the manifest in progress. It is written before the manifest, and removed once the
// scheduler has been seen working. So an existing journal means an unfinished run.
type journal struct {
	// Operation is install or rollback.
	Operation string    `json:"operation"`
	Started   time.Time `json:"started"`
	// Process is the ID of the process that makes the change.
	Process int `json:"process"`
	// Unproven are the identities of the manifests that unfinished
	// runs, including this one, have written. None was seen working.
	Unproven []string `json:"unproven,omitempty"`
}

// installed records the last successful install.
type installed struct {
	At time.Time `json:"at"`
	// Manifest is the SHA-256 sum of the file as written.
	Manifest string `json:"manifest"`
	Image    string `json:"image"`
	ImageID  string `json:"imageID"`
	Version  string `json:"version"`
	// Config is the SHA-256 sum of the configuration; empty without one.
	Config string `json:"config,omitempty"`
	// Mounts and Hardened are those of the swap.
	Mounts   string `json:"mounts,omitempty"`
	Hardened bool   `json:"hardened,omitempty"`
}

// readRecord reads a JSON file of the state directory into record, and reports whether the file exists.
func readRecord(path string, record any) (bool, error) {
	content, err := readIfThere(path)
	if content == nil || err != nil {
		return false, err
	}
	if err := json.Unmarshal(content, record); err != nil {
		return false, nextstep.With(fmt.Errorf("%s is damaged: %w", path, err),
			"read it, and remove it if you do not need it")
	}
	return true, nil
}

func writeRecord(path string, record any) error {
	content, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return err
	}
	return writeDurably(path, append(content, '\n'), 0o644)
}

// unfinished returns the journal of an unfinished run; nil if there is none.
func (s state) unfinished() (*journal, error) {
	found := &journal{}
	there, err := readRecord(s.journalFile(), found)
	if !there || err != nil {
		return nil, err
	}
	return found, nil
}

// doubted reports whether a manifest is from an unfinished run and has never been seen working.
func (s state) doubted(unfinished *journal, manifest []byte) (bool, error) {
	if unfinished == nil || !slices.Contains(unfinished.Unproven, identity(manifest)) {
		return false, nil
	}
	last, there, err := s.lastInstalled()
	// A run that was killed during its cleanup has seen the manifest working.
	return !there || last.Manifest != sum(manifest), err
}

// writeJournal records a manifest as not yet seen working, before it is written. It keeps the entries of an
// earlier unfinished run.
func (s state) writeJournal(operation string, manifest []byte, before *journal) error {
	begun := journal{Operation: operation, Started: s.started, Process: os.Getpid(), Unproven: []string{identity(manifest)}}
	if before != nil {
		begun.Unproven = append(begun.Unproven, before.Unproven...)
	}
	if err := writeRecord(s.journalFile(), begun); err != nil {
		return s.noRoom("cannot write the journal", err)
	}
	return nil
}

// unbegin restores the journal from before a run that has written nothing.
func (s state) unbegin(before *journal) error {
	if before == nil {
		return removeDurably(s.journalFile())
	}
	return writeRecord(s.journalFile(), before)
}

// undone records that the manifest from before a failed install is in place again.
func (s state) undone(good, written []byte) error {
	last, there, err := s.lastInstalled()
	if err != nil {
		return err
	}
	// It has a new restart time now.
	if there && last.Manifest == sum(good) && last.Manifest != sum(written) {
		last.Manifest = sum(written)
		if err := writeRecord(s.installedFile(), last); err != nil {
			return err
		}
	}
	return s.endJournal()
}

// endJournal ends a change whose scheduler works: nothing is left to undo.
func (s state) endJournal() error {
	return errors.Join(removeDurably(s.journalFile()), removeDurably(s.undo()))
}

// recordInstalled records the swap in a manifest as the last one that works.
func (s state) recordInstalled(manifest []byte, swap Swap, imageID string) error {
	return writeRecord(s.installedFile(), installed{At: time.Now().UTC(), Manifest: sum(manifest), Image: swap.Image, ImageID: imageID,
		Version: swap.Version, Config: swap.ConfigSHA256, Mounts: swap.Mounts, Hardened: swap.Hardened})
}

// lastInstalled returns the record of the last successful install, and whether there is one.
func (s state) lastInstalled() (last installed, there bool, err error) {
	there, err = readRecord(s.installedFile(), &last)
	return last, there, err
}

// keepPrevious makes the manifest from before a change the previous one, unless it is the same as the written one.
func (s state) keepPrevious(written []byte) error {
	kept, err := readIfThere(s.undo())
	if err != nil || kept == nil || identity(kept) == identity(written) {
		return err
	}
	if err := os.Rename(s.undo(), s.previous()); err != nil {
		return nextstep.With(fmt.Errorf("the new scheduler works, but the manifest for a rollback cannot be saved: %w", err),
			"run this again")
	}
	return nil
}
