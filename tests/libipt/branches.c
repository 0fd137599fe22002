/*
 * Lists the branches of a trace of Intel PT as libipt decodes it: a line `FROM => TO` for each, in hexadecimal digits;
 * FROM is 0 where tracing begins, TO where it ends.
 *
 *     cc -O2 -o branches branches.c -lipt
 *     branches TRACE CODE ADDRESS
 *
 * TRACE has the bytes of the trace, CODE those of the code at ADDRESS.
 */
#include <fcntl.h>
#include <intel-pt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void branch(uint64_t from, uint64_t to)
{
	printf("%" PRIx64 " => %" PRIx64 "\n", from, to);
}

/* An instruction, and where the flow went on: a conditional jump to the next instruction counts as not taken. */
static void follow(const struct pt_insn *last, uint64_t next)
{
	int is_branch = last->iclass != ptic_other && last->iclass != ptic_cond_jump;

	if (last->size && (is_branch || last->ip + last->size != next))
		branch(last->ip, next);
}

/* Takes the events that are due; forgets the last instruction where the flow does not go on behind it. */
static int events(struct pt_insn_decoder *decoder, int status, struct pt_insn *last)
{
	while (status >= 0 && status & pts_event_pending) {
		struct pt_event event;
		uint64_t from, to;

		status = pt_insn_event(decoder, &event, sizeof(event));
		if (status < 0 || event.status_update)
			continue;
		switch (event.type) {
		case ptev_enabled:
			from = 0;
			to = event.variant.enabled.ip;
			break;
		case ptev_disabled:
			from = last->ip;
			to = event.ip_suppressed ? 0 : event.variant.disabled.ip;
			break;
		case ptev_async_disabled:
			from = event.variant.async_disabled.at;
			to = event.ip_suppressed ? 0 : event.variant.async_disabled.ip;
			follow(last, from);
			break;
		case ptev_async_branch:
			from = event.variant.async_branch.from;
			to = event.variant.async_branch.to;
			follow(last, from);
			break;
		default:
			continue;
		}
		branch(from, to);
		last->size = 0;
	}
	return status;
}

/* Decodes from one PSB to an error or the end. */
static int decode(struct pt_insn_decoder *decoder, int status)
{
	struct pt_insn last = { 0 };

	for (;;) {
		struct pt_insn insn = { 0 };

		status = events(decoder, status, &last);
		if (status < 0 || status & pts_eos)
			return status;
		status = pt_insn_next(decoder, &insn, sizeof(insn));
		if (insn.iclass == ptic_error)
			return status;
		follow(&last, insn.ip);
		last = insn;
	}
}

static uint8_t *map(const char *path, size_t *size)
{
	int file = open(path, O_RDONLY);
	struct stat stat;
	void *bytes;

	if (file < 0 || fstat(file, &stat))
		return NULL;
	*size = stat.st_size;
	bytes = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, file, 0);
	close(file);
	return bytes == MAP_FAILED ? NULL : bytes;
}

int main(int argc, char **argv)
{
	struct pt_insn_decoder *decoder;
	struct pt_image *image;
	struct pt_config config;
	size_t size, code;
	int status;

	if (argc != 4) {
		fprintf(stderr, "usage: branches TRACE CODE ADDRESS\n");
		return 2;
	}
	pt_config_init(&config);
	config.begin = map(argv[1], &size);
	if (!config.begin || !map(argv[2], &code)) {
		perror("branches");
		return 2;
	}
	config.end = config.begin + size;
	image = pt_image_alloc(NULL);
	status = pt_image_add_file(image, argv[2], 0, code, NULL, strtoull(argv[3], NULL, 16));
	decoder = pt_insn_alloc_decoder(&config);
	if (status < 0 || !decoder || pt_insn_set_image(decoder, image) < 0) {
		fprintf(stderr, "branches: libipt does not take this image\n");
		return 2;
	}
	while ((status = pt_insn_sync_forward(decoder)) != -pte_eos) {
		if (status >= 0)
			status = decode(decoder, status);
		if (status >= 0 || status == -pte_eos)
			break;
		fprintf(stderr, "branches: libipt: %s\n", pt_errstr(pt_errcode(status)));
	}
	pt_insn_free_decoder(decoder);
	pt_image_free(image);
	return 0;
}
