// SPDX-License-Identifier: Apache-2.0

// Package e2e swaps the scheduler of genuine kubeadm control-plane nodes while pods arrive, and rolls it back. It runs
// the commands of docs/operations.md. test/e2e.sh starts it.
package e2e

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"kube-scheduler-fork/test/e2e/kubeadmnode"
)

// hub starts the nodes of the tests.
var hub *kubeadmnode.Hub

func TestMain(m *testing.M) {
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runAll(m *testing.M) (code int, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if hub, err = kubeadmnode.Open(ctx); err != nil {
		return 0, err
	}
	defer func() {
		if closeErr := hub.Close(); err == nil {
			err = closeErr
		}
	}()
	return m.Run(), nil
}

// setting returns a value that test/e2e.sh sets.
func setting(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set; next: make e2e", name)
	}
	return value
}
