// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/swap/manifest"
)

// Journal records a change of the manifest in progress. It is written before the manifest, and removed once the
// scheduler has been seen working. So an existing journal means an unfinished run.
type Journal struct {
	// Operation is install or rollback.
	Operation string    `json:"operation"`
	Started   time.Time `json:"started"`
	// Process is the ID of the process that makes the change.
	Process int `json:"process"`
	// Unproven are the identities of the manifests that unfinished
	// runs, including this one, have written. None was seen working.
	Unproven []string `json:"unproven,omitempty"`
}

// Installed records the last successful install.
type Installed struct {
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

// ReadJSON reads a JSON file of the state directory into record, and reports whether the file exists.
func ReadJSON(path string, record any) (bool, error) {
	content, err := ReadIfExists(path)
	if content == nil || err != nil {
		return false, err
	}
	if err := json.Unmarshal(content, record); err != nil {
		return false, nextstep.With(fmt.Errorf("%s is damaged: %w", path, err),
			"read it, and remove it if you do not need it")
	}
	return true, nil
}

func WriteJSON(path string, record any) error {
	content, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return err
	}
	return WriteDurably(path, append(content, '\n'), 0o644)
}

// Unfinished returns the journal of an unfinished run; nil if there is none.
func (s Directory) Unfinished() (*Journal, error) {
	found := &Journal{}
	there, err := ReadJSON(s.journalFile(), found)
	if !there || err != nil {
		return nil, err
	}
	return found, nil
}

// IsUnproven reports whether a manifest is from an unfinished run and has never been seen working.
func (s Directory) IsUnproven(unfinished *Journal, content []byte) (bool, error) {
	if unfinished == nil || !slices.Contains(unfinished.Unproven, manifest.Identity(content)) {
		return false, nil
	}
	last, there, err := s.lastInstalled()
	// A run that was killed during its cleanup has seen the manifest working.
	return !there || last.Manifest != manifest.Sum(content), err
}

// WriteJournal records a manifest as not yet seen working, before it is written. It keeps the entries of an
// earlier unfinished run.
func (s Directory) WriteJournal(operation string, content []byte, before *Journal) error {
	begun := Journal{Operation: operation, Started: s.Started, Process: os.Getpid(), Unproven: []string{manifest.Identity(content)}}
	if before != nil {
		begun.Unproven = append(begun.Unproven, before.Unproven...)
	}
	if err := WriteJSON(s.journalFile(), begun); err != nil {
		return s.NoRoom("cannot write the journal", err)
	}
	return nil
}

// RestoreJournal restores the journal from before a run that has written nothing.
func (s Directory) RestoreJournal(before *Journal) error {
	if before == nil {
		return RemoveDurably(s.journalFile())
	}
	return WriteJSON(s.journalFile(), before)
}

// Undone records that the manifest from before a failed install is in place again.
func (s Directory) Undone(good, written []byte) error {
	last, there, err := s.lastInstalled()
	if err != nil {
		return err
	}
	// It has a new restart time now.
	if there && last.Manifest == manifest.Sum(good) && last.Manifest != manifest.Sum(written) {
		last.Manifest = manifest.Sum(written)
		if err := WriteJSON(s.InstalledFile(), last); err != nil {
			return err
		}
	}
	return s.EndJournal()
}

// EndJournal ends a change whose scheduler works: nothing is left to undo.
func (s Directory) EndJournal() error {
	return errors.Join(RemoveDurably(s.journalFile()), RemoveDurably(s.Undo()))
}

// RecordInstalled records the swap in a manifest as the last one that works.
func (s Directory) RecordInstalled(content []byte, swap manifest.Swap, imageID string) error {
	return WriteJSON(s.InstalledFile(), Installed{At: time.Now().UTC(), Manifest: manifest.Sum(content), Image: swap.Image, ImageID: imageID,
		Version: swap.Version, Config: swap.ConfigSHA256, Mounts: swap.Mounts, Hardened: swap.Hardened})
}

// lastInstalled returns the record of the last successful install, and whether there is one.
func (s Directory) lastInstalled() (last Installed, there bool, err error) {
	there, err = ReadJSON(s.InstalledFile(), &last)
	return last, there, err
}

// SavePrevious makes the manifest from before a change the previous one, unless it is the same as the written one.
func (s Directory) SavePrevious(written []byte) error {
	kept, err := ReadIfExists(s.Undo())
	if err != nil || kept == nil || manifest.Identity(kept) == manifest.Identity(written) {
		return err
	}
	if err := os.Rename(s.Undo(), s.Previous()); err != nil {
		return nextstep.With(fmt.Errorf("the new scheduler works, but the manifest for a rollback cannot be saved: %w", err),
			"run this again")
	}
	return nil
}
