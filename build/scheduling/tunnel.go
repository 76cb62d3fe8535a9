// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"

	"kube-scheduler-fork/build/nextstep"
)

// tunnel is a connection through the API server and kubelet to a port of a pod, like that of kubectl port-forward.
//
// client-go's portforward.PortForwarder would listen on a port of this machine. After a lost connection, another user's
// program could listen on that port and receive a token. So nothing listens here.
type tunnel struct {
	connection httpstream.Connection
	leader     leader
	requests   atomic.Int64
}

// openTunnel connects to the leader's pod. The connection outlives the context.
func openTunnel(ctx context.Context, client kubernetes.Interface, config *rest.Config, leader leader) (*tunnel, error) {
	roundTripper, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	address := client.CoreV1().RESTClient().Post().Namespace(leader.namespace).Resource("pods").Name(leader.pod).SubResource("portforward").URL()
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: roundTripper}, http.MethodPost, address)
	type result struct {
		connection httpstream.Connection
		err        error
	}
	// Dial takes no context. A connection that opens too late is closed.
	results := make(chan result)
	go func() {
		connection, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
		select {
		case results <- result{connection, err}:
		case <-ctx.Done():
			if err == nil {
				connection.Close()
			}
		}
	}()
	select {
	case got := <-results:
		switch {
		case apierrors.IsForbidden(got.err):
			return nil, missing(got.err, leader.namespace, "create", "pods/"+leader.pod, "portforward")
		case got.err != nil:
			return nil, nextstep.With(fmt.Errorf("the API server cannot connect to the scheduler's pod %s: %w", leader, got.err),
				"kubectl --namespace %s port-forward pod/%s %d", leader.namespace, leader.pod, leader.port)
		}
		return &tunnel{connection: got.connection, leader: leader}, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("the connection to the scheduler's pod %s: %w", leader, ctx.Err())
	}
}

// alive reports whether the connection is open.
func (t *tunnel) alive() bool {
	select {
	case <-t.connection.CloseChan():
		return false
	default:
		return true
	}
}

func (t *tunnel) close() { t.connection.Close() }

// dial opens one connection to the scheduler. It ignores the address.
func (t *tunnel) dial(context.Context, string, string) (net.Conn, error) {
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(t.leader.port))
	headers.Set(corev1.PortForwardRequestIDHeader, strconv.FormatInt(t.requests.Add(1), 10))
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	errorStream, err := t.connection.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("the connection to the scheduler's pod %s: %w", t.leader, err)
	}
	// Only kubelet writes to this stream.
	errorStream.Close()
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	dataStream, err := t.connection.CreateStream(headers)
	if err != nil {
		errorStream.Reset()
		return nil, fmt.Errorf("the connection to the scheduler's pod %s: %w", t.leader, err)
	}
	conn := &streams{Stream: dataStream, errorStream: errorStream, tunnel: t, refused: make(chan error, 1)}
	go func() {
		message, _ := io.ReadAll(errorStream)
		if len(message) > 0 {
			conn.refused <- nextstep.With(fmt.Errorf("kubelet cannot reach the scheduler in pod %s on its port %d: %s", t.leader, t.leader.port, message),
				"kubectl --namespace %s logs %s", t.leader.namespace, t.leader.pod)
		}
		close(conn.refused)
	}()
	return conn, nil
}

// streams is a connection with a stream for the data and one for kubelet's errors.
type streams struct {
	httpstream.Stream
	errorStream httpstream.Stream
	tunnel      *tunnel
	// refused receives kubelet's error, and is closed when kubelet closes the error stream.
	refused chan error
}

// Read returns kubelet's error instead of io.EOF if there is one: the error arrives next to the end of the data.
func (s *streams) Read(buffer []byte) (int, error) {
	read, err := s.Stream.Read(buffer)
	if errors.Is(err, io.EOF) && read == 0 {
		select {
		case refused := <-s.refused:
			if refused != nil {
				return 0, refused
			}
		case <-time.After(time.Second):
		}
	}
	return read, err
}

// Close ends both directions; the stream's own Close would wait for pending data.
func (s *streams) Close() error {
	err := s.Reset()
	s.errorStream.Reset()
	s.tunnel.connection.RemoveStreams(s.Stream, s.errorStream)
	return err
}

// address is the connection's only address: the pod's name.
type address leader

func (a address) Network() string { return "portforward" }
func (a address) String() string  { return leader(a).String() }

func (s *streams) LocalAddr() net.Addr  { return address{} }
func (s *streams) RemoteAddr() net.Addr { return address(s.tunnel.leader) }

// The requests' contexts set the deadlines.
func (s *streams) SetDeadline(time.Time) error      { return nil }
func (s *streams) SetReadDeadline(time.Time) error  { return nil }
func (s *streams) SetWriteDeadline(time.Time) error { return nil }
