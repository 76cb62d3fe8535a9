// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestASignalEndsWhatChangesNothing(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	// The work blocks, like a read from a pipe without a writer.
	if err := unlessEnded(ended, time.Millisecond, func() error { select {} }); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("got %v", err)
	}
	// The work's own error takes precedence.
	own := errors.New("own")
	if err := unlessEnded(ended, time.Hour, func() error { return own }); err != own {
		t.Errorf("got %v, want what the work says", err)
	}
	if err := unlessEnded(t.Context(), 0, func() error { return own }); err != own {
		t.Errorf("got %v, want what the work says", err)
	}
}
