// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// roleVariable makes the test binary play another program: tests of child processes need a few that do one simple
// thing.
const roleVariable = "SUPERVISOR_TEST_ROLE"

// The roles. A role's argument is in os.Args[1].
const (
	// roleServer listens on an address, and ends when it cannot.
	roleServer = "server"
	// roleReady serves HTTPS at an address; it answers, and says that it does, 503 twice and from then on 200.
	roleReady = "ready"
	// roleStubborn ignores SIGTERM; it says "ready" when it does.
	roleStubborn = "stubborn"
	// rolePanic logs, and panics.
	rolePanic = "panic"
)

func TestMain(m *testing.M) {
	var err error
	switch role := os.Getenv(roleVariable); role {
	case "":
		os.Exit(m.Run())
	case roleServer:
		err = playServer(os.Args[1])
	case roleReady:
		err = playReady(os.Args[1])
	case roleStubborn:
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		time.Sleep(time.Hour) // not select {}, for which Go would end it where there is no cgo
	case rolePanic:
		fmt.Fprintln(os.Stderr, "I0101 a line before")
		panic("what is wrong")
	default:
		err = fmt.Errorf("no such role: %s", role)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func playServer(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	for {
		connection, err := listener.Accept()
		if err != nil {
			return err
		}
		if err := connection.Close(); err != nil {
			return err
		}
	}
}

func playReady(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	var asked atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := http.StatusOK
		if asked.Add(1) <= 2 {
			answer = http.StatusServiceUnavailable
		}
		fmt.Println(answer, r.URL.Path)
		w.WriteHeader(answer)
	}))
	server.Listener.Close()
	server.Listener = listener
	server.StartTLS()
	select {}
}
