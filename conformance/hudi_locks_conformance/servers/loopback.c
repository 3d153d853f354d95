/*
 * Preloaded into a server that can only listen on every address of the machine: makes it listen on loopback alone, so
 * that a lock service for tests, which asks nobody for a password, is not offered to the network.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* The IPv6 form of 127.0.0.1: what a socket for both families must be bound to. */
static const struct in6_addr MAPPED = {{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1}}};

int bind(int socket_number, const struct sockaddr *wanted, socklen_t size)
{
    int (*system_bind)(int, const struct sockaddr *, socklen_t);
    union address narrowed;

    *(void **)&system_bind = dlsym(RTLD_NEXT, "bind");
    if (wanted == NULL || size > sizeof narrowed)
        return system_bind(socket_number, wanted, size);
    memcpy(&narrowed, wanted, size);
    if (wanted->sa_family == AF_INET && narrowed.v4.sin_addr.s_addr == htonl(INADDR_ANY))
        narrowed.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (wanted->sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&narrowed.v6.sin6_addr))
        narrowed.v6.sin6_addr = MAPPED;
    return system_bind(socket_number, &narrowed.any, size);
}
