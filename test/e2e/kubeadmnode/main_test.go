// SPDX-License-Identifier: Apache-2.0

package kubeadmnode

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// keep is a flag of the test binary, because only a process in the hub of test/e2e.sh can start nodes.
var keep = flag.Int("keep", 1, "start a cluster of this many nodes, and keep it until Ctrl-C")

func TestMain(*testing.M) {
	flag.Parse()
	if err := keepOpen(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func keepOpen() (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	hub, err := Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hub.Close()) }()
	return keepCluster(ctx, hub, *keep)
}

// keepCluster starts a cluster for manual use.
func keepCluster(ctx context.Context, hub *Hub, count int) error {
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
