// SPDX-License-Identifier: Apache-2.0

package kubeadmnode

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// keep makes the test binary start nodes to work on by hand, instead of testing.
var keep = flag.Int("keep", 0, "start a cluster of so many nodes, and keep it until Ctrl-C")

// hub is where the tests start nodes.
var hub *Hub

func TestMain(m *testing.M) {
	flag.Parse()
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
	if hub, err = Open(ctx); err != nil {
		return 0, err
	}
	defer func() {
		if closeErr := hub.Close(); err == nil {
			err = closeErr
		}
	}()
	if *keep == 0 {
		return m.Run(), nil
	}
	return 0, keepCluster(ctx, *keep)
}

// keepCluster starts a cluster for a person.
func keepCluster(ctx context.Context, count int) error {
	var first *Node
	for number := range count {
		node, err := hub.Start(ctx, NodeOptions{Name: fmt.Sprintf("cp%d", number+1)})
		if err != nil {
			return err
		}
		if first == nil {
			first = node
			err = node.Init(ctx, InitOptions{})
		} else {
			err = node.Join(ctx, first, JoinOptions{})
		}
		if err != nil {
			return err
		}
		pid, err := node.process()
		if err != nil {
			return err
		}
		if err := os.WriteFile(hub.folder+"/"+node.name+".pid", fmt.Appendln(nil, pid), 0o644); err != nil {
			return err
		}
		fmt.Printf("%s is ready at %s\n", node.name, node.address)
	}
	fmt.Println("until Ctrl-C")
	<-ctx.Done()
	return nil
}
